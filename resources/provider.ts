/** What Pulumi's provider process loads: the lifecycle, with all components known to it. */
import "./index";
export { forKind } from "../provider/dynamic";
