/** A script as text: the build and the test runner read it in. */
declare module "*.lua" {
  const text: string
  export default text
}
