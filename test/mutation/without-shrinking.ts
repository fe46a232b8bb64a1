import fc from "fast-check"

// A mutant is noticed as soon as a property fails. Do not search for the smallest example.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
