import * as pulumi from "@pulumi/pulumi";
import { Cluster, loadCluster } from "kubexm";

// pulumi config set kubexm:file ../my/cluster.yaml
const file = new pulumi.Config("kubexm").get("file") ?? "cluster.yaml";
const { name, spec } = loadCluster(file);
new Cluster(name, spec);
