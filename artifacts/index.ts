export { ARCHES, FILES, minors, presetImageMirrors, type Arch, type FileId, type FileName } from "./catalogue";
export { fetchFile } from "./fetch";
export { fileFor } from "./files";
export { localPath } from "./local-path";
export { sourcesFor } from "./published";
export { hasLogin, holdLogin, sources, type Sources } from "./sources";
export { imagesFor, versionsFor, type Versions } from "./versions";
export { sha256Of } from "../toolchain/download";
export { wantedFile, type Wanted } from "./wanted";
