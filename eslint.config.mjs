import tseslint from "typescript-eslint";

const byTemplate = "Build command text with sh`…` (provider/shell.ts), never by hand.";

/**
 * Shell text is written only with the quoting template of provider/shell.ts; this is what keeps a host name from being run.
 * Whoever runs it on a host asks for a Command, and those are made there alone.
 */
export const shellTextRules = [
  {
    selector: "TemplateLiteral[expressions.length>0]:matches(CallExpression[callee.property.name=/^(exec|run)$/] > *)",
    message: byTemplate,
  },
  { selector: "CallExpression[callee.name='literal'] > :not(Literal).arguments", message: byTemplate },
];
export const commandRule = { selector: "NewExpression[callee.name='Command']", message: byTemplate };

/** The template itself, the library of functions, quoted scripts, and content, quoted or in base64. */
const makersOfCommands = ["provider/shell.ts", "provider/lib.ts", "provider/script.ts", "provider/steps/file.ts"];

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "bench/results/", "**/*.cjs"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", package: "node:test", name: ["test", "it", "describe", "suite", "before", "after"] },
          ],
        },
      ],
      "max-lines": ["error", { max: 400, skipBlankLines: true, skipComments: true }],
      "no-console": "error",
      "no-restricted-syntax": ["error", ...shellTextRules, commandRule],
    },
  },
  { files: [...makersOfCommands, "test/**"], rules: { "no-restricted-syntax": ["error", ...shellTextRules] } },
  { files: ["cli/**", "lab/**", "bench/**", "test/**", "toolchain/**"], rules: { "no-console": "off" } },
  // Read by a Node of any age.
  { files: ["bin/kubexm.js"], languageOptions: { ecmaVersion: 5, sourceType: "script" } },
  { files: ["examples/**"], ...tseslint.configs.disableTypeChecked },
);
