/** A Lua script as a string. The build and the test runner load it. */
declare module "*.lua" {
  const text: string
  export default text
}
