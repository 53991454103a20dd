/** The house of docs/architecture.md: each floor calls only the one below. */
const floor = (name, from, allowed) => ({
  name,
  severity: "error",
  comment: `${from} may use only ${allowed}`,
  from: { path: from },
  to: {
    path: "^(cli|resources|provider|artifacts|lab|toolchain|test|bench|index|program)",
    pathNot: `${from}|${allowed}`,
  },
});

const clusterFloor = "^resources/(cluster\\.ts|modules/|config/)";
const componentFloor = "^resources/(?!cluster\\.ts|modules/|config/|preflight/|index\\.ts|provider\\.ts)[a-z/-]+\\.ts$";

/** The command's ways into the house: the cluster as a resource, its file (and alone what reads it), the lifecycle, and which files it needs. */
const doors = "^index\\.ts|^resources/(config/(index|read)|provider|modules/files)\\.ts";

module.exports = {
  forbidden: [
    floor("ssh-knows-nothing-above", "^provider/ssh/", "^provider/(shell|errors)\\.ts"),
    floor("steps-know-only-shell", "^provider/steps/", "^provider/(shell|errors|step|bulk|later)\\.ts"),
    floor("engine-does-not-know-components", "^provider/", "^provider/"),
    floor(
      "components-use-steps-only",
      componentFloor,
      "^provider/(component|steps/index|shell|os|facts|step|ask|ssh/spec)\\.ts|^resources/(config|runtime|kubernetes|preflight)/|^artifacts/index\\.ts",
    ),
    floor(
      "preflight-looks-and-judges",
      "^resources/preflight/",
      "^provider/|^resources/(config/|kubernetes/paths\\.ts|modules/(ports|node-kernel)\\.ts)",
    ),
    floor(
      "clusters-use-components-only",
      clusterFloor,
      "^resources/|^artifacts/|^provider/(component|errors|host|inputs|ssh/spec)\\.ts",
    ),
    floor(
      "the-list-of-components-holds-components",
      "^resources/index\\.ts",
      `${componentFloor}|^resources/modules/system\\.ts`,
    ),
    floor(
      "the-provider-joins-lifecycle-and-components",
      "^resources/provider\\.ts",
      "^resources/(index\\.ts|config/|preflight/)|^provider/(dynamic|drift|journal|lifecycle)\\.ts",
    ),
    floor(
      "the-library-is-clusters-and-components",
      "^index\\.ts",
      "^resources/(cluster|index|modules/cluster-file)\\.ts|^provider/host\\.ts",
    ),
    floor("the-program-uses-the-library", "^program\\.ts", "^index\\.ts"),
    floor("toolchain-stands-alone", "^toolchain/", "^toolchain/"),
    floor("artifacts-stand-alone", "^artifacts/", "^toolchain/|^provider/(errors|steps/payload)\\.ts"),
    floor("lab-uses-toolchain-and-artifacts", "^lab/", "^toolchain/|^artifacts/"),
    floor("verbs-come-in-by-the-doors", "^cli/", `${doors}|^artifacts/index\\.ts|^(lab|toolchain)/`),
    { name: "no-circles", severity: "error", from: {}, to: { circular: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^dist/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
  },
};
