import { stringify } from "smol-toml";
import { z } from "zod";
import { hasLogin } from "../../artifacts";
import { Secret } from "../../provider/shell";
import { file } from "../../provider/steps";

const place = z
  .object({
    url: z
      .url({ protocol: /^https?$/ })
      .refine((address) => !hasLogin(address), { message: "holds a login, which is not taken from here: see logins" })
      .describe("Address, with the project's path where there is one"),
    ca: z.string().optional().describe("Certificate to trust, as text"),
    skipVerify: z.boolean().default(false).describe("Do not check its certificate"),
  })
  .strict();

export const registry = z
  .object({
    places: z.array(place).default([]).describe("Asked in this order before the registry itself"),
    own: z
      .array(place)
      .default([])
      .describe("How the registry itself is reached, in this order, where that is not https with a known certificate"),
  })
  .strict();

export const login = z.object({ username: z.string(), password: z.string() }).strict();

/** By which this machine's owner is known to a registry, both as text. */
export const client = z.object({ cert: z.string(), key: z.string() }).strict();

type Place = z.output<typeof place>;
type Login = z.output<typeof login>;
type Client = z.output<typeof client>;

/** What a registry asks of those who come: a name and a password, or a certificate. */
export interface Proofs {
  readonly logins: Readonly<Record<string, Login>>;
  readonly clients?: Readonly<Record<string, readonly Client[]>>;
}

const folder = "/etc/containerd/certs.d";

/** docker.io is a name; its images lie elsewhere. */
const serverOf = (name: string) => (name === "docker.io" ? "https://registry-1.docker.io" : `https://${name}`);

const authorization = ({ username, password }: Login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

interface Shown {
  caPath: string;
  login?: Login | undefined;
  clientPaths: readonly (readonly string[])[];
}

/** containerd asks below /v2 by itself, unless the address says where. */
function hostOf({ url, ca, skipVerify }: Place, { caPath, login, clientPaths }: Shown) {
  const { origin, pathname } = new URL(url);
  const path = pathname.replace(/\/+$/, "");
  return {
    [path === "" ? origin : `${origin}/v2${path.replace(/^\/v2(?=\/|$)/, "")}`]: {
      capabilities: ["pull", "resolve"],
      ...(path !== "" && { override_path: true }),
      ...(ca !== undefined && { ca: caPath }),
      ...(skipVerify && { skip_verify: true }),
      ...(clientPaths.length > 0 && origin.startsWith("https:") && { client: clientPaths }),
      ...(login && { header: { authorization: authorization(login) } }),
    },
  };
}

/** What containerd reads anew at every pull: where the images of one registry come from. */
export function registryFiles(
  name: string,
  { places, own }: z.output<typeof registry>,
  { logins, clients: allClients = {} }: Proofs,
) {
  const clients = allClients[name] ?? [];
  const known = logins[name] !== undefined || clients.length > 0;
  const itself = own.length === 0 && known ? [{ url: serverOf(name), skipVerify: false }] : own;
  const all = [...places.map((one) => ({ one, itself: false })), ...itself.map((one) => ({ one, itself: true }))];
  const at = (file: string) => `${folder}/${name}/${file}`;
  const loginOf = (one: Place, isItself: boolean) => logins[isItself ? name : new URL(one.url).host];
  const pairs = clients.map(({ cert, key }, i) => [
    file(at(`client-${i}.cert`), cert),
    file(at(`client-${i}.key`), new Secret(key), { mode: "0600" }),
  ]);
  const clientPaths = clients.map((_, i) => [at(`client-${i}.cert`), at(`client-${i}.key`)]);
  const hosts = all.map(({ one, itself }, i) =>
    hostOf(one, { caPath: at(`ca-${i}.crt`), login: loginOf(one, itself), clientPaths: itself ? clientPaths : [] }),
  );
  const text = stringify({ server: own.at(-1)?.url ?? serverOf(name), host: Object.assign({}, ...hosts) as object });
  const secret = all.some(({ one, itself }) => loginOf(one, itself) !== undefined);
  return [
    ...all.flatMap(({ one: { ca } }, i) => (ca === undefined ? [] : [file(at(`ca-${i}.crt`), ca)])),
    ...pairs.flat(),
    file(at("hosts.toml"), secret ? new Secret(text) : text, { mode: "0600" }),
  ];
}
