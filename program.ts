import * as pulumi from "@pulumi/pulumi";
import { resolve } from "node:path";
import { Cluster, loadCluster } from "./index.js";

const file = new pulumi.Config("kubexm").get("file") ?? "cluster.yaml";
const { name, spec } = loadCluster(resolve(__dirname, "..", file));
new Cluster(name, spec);
