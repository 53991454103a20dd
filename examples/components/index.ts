import * as pulumi from "@pulumi/pulumi";
import { Chrony, Host, Kernel } from "kubexm";

// pulumi config set address 192.0.2.9
const config = new pulumi.Config();
const host = new Host("box", { address: config.require("address"), user: config.get("user") ?? "root" });

new Chrony("box-time", { host, servers: ["pool.ntp.org"] });
new Kernel("box-kernel", { host, modules: ["br_netfilter"], sysctl: { "net.ipv4.ip_forward": 1 } });
