import { readFileSync } from "node:fs";
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
  own?: Place;
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

/** How a registry itself is reached, where that is out of the ordinary. */
function ownPlaces({ registry, kubernetes }: ClusterSpec): Map<string, Place> {
  const insecure = kubernetes.containerRuntime.containerd.insecureRegistries.map((name): [string, Place] => [
    name,
    { url: `http://${name}` },
  ]);
  const written = Object.entries(registry.auths).flatMap(([name, { plainHTTP, skipTLSVerify, certsPath }]) => {
    const ca = certsPath === undefined ? undefined : certificate(`${certsPath}/ca.crt`, `registry.auths of ${name}`);
    if (!plainHTTP && !skipTLSVerify && ca === undefined) return [];
    const place: Place = {
      url: `${plainHTTP ? "http" : "https"}://${name}`,
      ...(ca !== undefined && { ca }),
      ...(skipTLSVerify && { skipVerify: true }),
    };
    return [[name, place] as [string, Place]];
  });
  return new Map([...insecure, ...written]);
}

/** Where the images of each registry come from. */
export function registriesOf(spec: ClusterSpec): Record<string, Registry> {
  const [mirrors, own] = [mirrorsByRegistry(spec), ownPlaces(spec)];
  const names = [...new Set([...mirrors.keys(), ...own.keys(), ...Object.keys(loginsOf(spec))])].sort();
  return Object.fromEntries(
    names.map((name) => {
      const place = own.get(name);
      return [name, { places: mirrors.get(name) ?? [], ...(place && { own: place }) }];
    }),
  );
}

export const loginsOf = ({ registry }: ClusterSpec): Record<string, { username: string; password: string }> =>
  Object.fromEntries(
    Object.entries(registry.auths).flatMap(([name, { username, password }]) =>
      username === undefined || password === undefined ? [] : [[name, { username, password }]],
    ),
  );
