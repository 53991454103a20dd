export { ARCHES, FILES, minors, type Arch, type FileId, type FileName } from "./catalogue";
export { fetchFile } from "./fetch";
export { fileFor } from "./files";
export { sourcesFor } from "./published";
export { sources, type Sources } from "./sources";
export { imagesFor, versionsFor, type Versions } from "./versions";
export { wantedFile, type Wanted } from "./wanted";
