import { z } from "zod";

/**
 * A file of this machine: in a cluster file it may be named without its folder. Such leaves are known by being this very schema, so
 * what is said of one is said after `optional()`. States of earlier versions may hold an empty one.
 */
export const localPath = z.string();
export const isHome = (path: string): boolean => path === "~" || path.startsWith("~/");

const credentials = {
  user: z.string().min(1).optional().describe("Login name; default what ~/.ssh/config says, else root"),
  password: z.string().optional().describe("Login password; also the sudo password unless sudoPassword is set"),
  privateKeyPath: localPath.optional().describe("Path of a private key on this machine; ~ is your home folder"),
  privateKey: z.string().optional().describe("A private key given inline (kept encrypted in the state)"),
  passphrase: z.string().optional().describe("Passphrase of the private key"),
  agent: z.boolean().default(true).describe("Try the keys of the running ssh-agent after the given key"),
  hostKey: z
    .string()
    .regex(/^(SHA256:[A-Za-z0-9+/]{43}=?|(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/]+=*( .*)?)$/, {
      message: "must be `ssh-ed25519 AAAA…` or a `SHA256:…` fingerprint",
    })
    .optional()
    .describe("The host's public key, pinned: `ssh-ed25519 AAAA…` or its `SHA256:…` fingerprint"),
};

const endpoint = {
  address: z.string().min(1).describe("IP address, DNS name, or a Host alias of ~/.ssh/config"),
  port: z.number().int().min(1).max(65535).optional().describe("SSH port; default 22 or what ~/.ssh/config says"),
};

/** One hop on the way to a host. */
export const bastionSpec = z.object({ ...endpoint, ...credentials }).strict();

/** How to reach one host and become root on it. */
export const hostSpec = z
  .object({
    name: z.string().min(1).describe("Name of the host in messages and in the cluster"),
    ...endpoint,
    ...credentials,
    sudoPassword: z.string().optional().describe("Password for sudo, when it differs from the login password"),
    bastions: z.array(bastionSpec).default([]).describe("Hosts to jump through, first hop first"),
    hostKeyChecking: z
      .enum(["strict", "accept-new"])
      .default("strict")
      .describe("strict: the key must be known; accept-new: an unknown key is recorded, a changed one still refused"),
    knownHostsPath: localPath.optional().describe("known_hosts file; default ~/.ssh/known_hosts"),
    connectTimeout: z.number().int().min(1).default(20).describe("Seconds to connect and log in"),
  })
  .strict();

export type BastionSpec = z.output<typeof bastionSpec>;
export type HostSpec = z.output<typeof hostSpec>;
/** The names of the leaves that are secrets wherever a host is described. */
export const secretLeaves = ["password", "privateKey", "passphrase", "sudoPassword"] as const;
