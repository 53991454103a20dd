import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { localPath, presetImageMirrors } from "../../artifacts";
import { UserError } from "../../provider/errors";
import type { ClusterSpec } from "../config";

interface Place {
  url: string;
  ca?: string;
  skipVerify?: boolean;
}

interface Registry {
  places: Place[];
  own: Place[];
}

/** The certificate travels as text: hosts have no files of this machine. */
function certificate(path: string, where: string): string {
  try {
    return readFileSync(localPath(path), "utf8");
  } catch {
    throw new UserError(
      `${where}: the certificate ${path} cannot be read; write the path of a PEM file on this machine`,
    );
  }
}

const withScheme = (address: string) => (/^https?:\/\//.test(address) ? address : `https://${address}`);

function mirrorsByRegistry({ zone, mirrors, kubernetes }: ClusterSpec): Map<string, Place[]> {
  const rows = [
    ...mirrors.images.map(({ registry, url, caPath, skipTLSVerify }) => ({
      registry,
      place: {
        url,
        ...(caPath !== undefined && { ca: certificate(caPath, `mirrors.images of ${registry}`) }),
        ...(skipTLSVerify && { skipVerify: true }),
      },
    })),
    ...kubernetes.containerRuntime.containerd.registryMirrors.map((address) => ({
      registry: "docker.io",
      place: { url: withScheme(address) },
    })),
    ...presetImageMirrors(zone).map(({ registry, url }) => ({ registry, place: { url } })),
  ];
  const names = [...new Set(rows.map(({ registry }) => registry))];
  return new Map(
    names.map((name) => [name, rows.flatMap(({ registry, place }) => (registry === name ? [place] : []))]),
  );
}

interface Certificates {
  /** Those to be trusted, one after another. */
  ca?: string;
  clients: { cert: string; key: string }[];
}

/** A folder as docker has them: *.crt are trusted; *.cert, with *.key of the same name, is shown to the registry. */
function certificatesIn(folder: string, where: string): Certificates {
  let names: string[];
  try {
    names = readdirSync(localPath(folder)).sort();
  } catch {
    throw new UserError(
      `${where}: the folder ${folder} cannot be read; write one on this machine, or leave certsPath out`,
    );
  }
  const read = (name: string) => certificate(join(folder, name), where);
  const ending = (end: string) => names.filter((name) => name.endsWith(end));
  const trusted = ending(".crt").map((name) => read(name).replace(/\n*$/, "\n"));
  const clients = ending(".cert").map((name) => {
    const key = name.replace(/cert$/, "key");
    if (!names.includes(key)) throw new UserError(`${where}: ${folder} has ${name}, but no ${key}; put it beside it`);
    return { cert: read(name), key: read(key) };
  });
  if (trusted.length + clients.length === 0)
    throw new UserError(
      `${where}: there is neither a *.crt nor a *.cert in ${folder}; put one there, or leave certsPath out`,
    );
  return { ...(trusted.length > 0 && { ca: trusted.join("") }), clients };
}

/** By registry, what its certsPath holds. */
const certificatesOf = ({ registry }: ClusterSpec): Map<string, Certificates> =>
  new Map(
    Object.entries(registry.auths).flatMap(([name, { certsPath }]) =>
      certsPath === undefined ? [] : [[name, certificatesIn(certsPath, `registry.auths of ${name}`)] as const],
    ),
  );

/** How a registry itself is reached, where that is out of the ordinary. */
function ownPlaces(spec: ClusterSpec): Map<string, Place[]> {
  const { registry, kubernetes } = spec;
  const certificates = certificatesOf(spec);
  // Nobody has said which of the two it is.
  const insecure = kubernetes.containerRuntime.containerd.insecureRegistries.map((name): [string, Place[]] => [
    name,
    [{ url: `https://${name}`, skipVerify: true }, { url: `http://${name}` }],
  ]);
  const written = Object.entries(registry.auths).flatMap(([name, { plainHTTP, skipTLSVerify }]) => {
    const { ca } = certificates.get(name) ?? {};
    if (!plainHTTP && !skipTLSVerify && ca === undefined) return [];
    const place: Place = {
      url: `${plainHTTP ? "http" : "https"}://${name}`,
      ...(ca !== undefined && { ca }),
      ...(skipTLSVerify && { skipVerify: true }),
    };
    return [[name, [place]] as [string, Place[]]];
  });
  return new Map([...insecure, ...written]);
}

/** Where the images of each registry come from. */
export function registriesOf(spec: ClusterSpec): Record<string, Registry> {
  const [mirrors, own] = [mirrorsByRegistry(spec), ownPlaces(spec)];
  const known = [...Object.keys(loginsOf(spec)), ...Object.keys(clientsOf(spec))];
  const names = [...new Set([...mirrors.keys(), ...own.keys(), ...known])].sort();
  return Object.fromEntries(names.map((name) => [name, { places: mirrors.get(name) ?? [], own: own.get(name) ?? [] }]));
}

/** Certificates that are shown to a registry; their keys are secrets. */
export const clientsOf = (spec: ClusterSpec): Record<string, Certificates["clients"]> =>
  Object.fromEntries(
    [...certificatesOf(spec)].flatMap(([name, { clients }]) => (clients.length === 0 ? [] : [[name, clients]])),
  );

export const loginsOf = ({ registry }: ClusterSpec): Record<string, { username: string; password: string }> =>
  Object.fromEntries(
    Object.entries(registry.auths).flatMap(([name, { username, password }]) =>
      username === undefined || password === undefined ? [] : [[name, { username, password }]],
    ),
  );
