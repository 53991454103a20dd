import { stringify } from "smol-toml";
import { z } from "zod";
import { Secret } from "../../provider/shell";
import { file } from "../../provider/steps";

const place = z
  .object({
    url: z.url({ protocol: /^https?$/ }).describe("Address, with the project's path where there is one"),
    ca: z.string().optional().describe("Certificate to trust, as text"),
    skipVerify: z.boolean().default(false).describe("Do not check its certificate"),
  })
  .strict();

export const registry = z
  .object({
    places: z.array(place).default([]).describe("Asked in this order before the registry itself"),
    own: place
      .optional()
      .describe("How the registry itself is reached, where that is not https with a known certificate"),
  })
  .strict();

export const login = z.object({ username: z.string(), password: z.string() }).strict();

type Place = z.output<typeof place>;
type Login = z.output<typeof login>;

const folder = "/etc/containerd/certs.d";

/** docker.io is a name; its images lie elsewhere. */
const serverOf = (name: string) => (name === "docker.io" ? "https://registry-1.docker.io" : `https://${name}`);

const authorization = ({ username, password }: Login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

/** containerd asks below /v2 by itself, unless the address says where. */
function hostOf({ url, ca, skipVerify }: Place, caPath: string, who: Login | undefined) {
  const { origin, pathname } = new URL(url);
  const path = pathname.replace(/\/+$/, "");
  return {
    [path === "" ? origin : `${origin}/v2${path.replace(/^\/v2(?=\/|$)/, "")}`]: {
      capabilities: ["pull", "resolve"],
      ...(path !== "" && { override_path: true }),
      ...(ca !== undefined && { ca: caPath }),
      ...(skipVerify && { skip_verify: true }),
      ...(who && { header: { authorization: authorization(who) } }),
    },
  };
}

/** What containerd reads anew at every pull: where the images of one registry come from. */
export function registryFiles(
  name: string,
  { places, own }: z.output<typeof registry>,
  logins: Readonly<Record<string, Login>>,
) {
  const all = [...places, ...(own || logins[name] ? [own ?? { url: serverOf(name), skipVerify: false }] : [])];
  const caPath = (i: number) => `${folder}/${name}/ca-${i}.crt`;
  const loginOf = ({ url }: Place) =>
    own?.url === url || url === serverOf(name) ? logins[name] : logins[new URL(url).host];
  const hosts = all.map((one, i) => hostOf(one, caPath(i), loginOf(one)));
  const text = stringify({ server: own?.url ?? serverOf(name), host: Object.assign({}, ...hosts) as object });
  return [
    ...all.flatMap(({ ca }, i) => (ca === undefined ? [] : [file(caPath(i), ca)])),
    file(`${folder}/${name}/hosts.toml`, all.some((one) => loginOf(one)) ? new Secret(text) : text, { mode: "0600" }),
  ];
}
