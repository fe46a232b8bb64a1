export { default } from "../../tsdown.config.ts"
