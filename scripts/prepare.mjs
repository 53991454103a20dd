// npm runs this after `npm ci` in a clone and before `npm pack`.
import { finish, start } from "./setup.mjs";

await start(finish);
