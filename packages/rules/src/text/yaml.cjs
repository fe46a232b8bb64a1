// Bundlers and Jest understand `require` in CommonJS, but not one that an ES module creates.
exports.yaml = () => require("yaml")
