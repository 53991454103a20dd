import { judgeCluster, problemText } from "../../resources/config/index";

/** A cluster file with nothing in it that can be left out. */
export const small = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata:
  name: prod
spec:
  hosts:
    - { name: m1, address: 192.0.2.1 }
  roleGroups:
    master: [m1]
`;

/** What is told of such a text, a line each. */
export const said = (text: string, sources = {}) =>
  judgeCluster(text, sources).problems.map((problem) => problemText("f", problem));
