import fc from "fast-check"

// Do not search for the smallest example, because a mutant is noticed as soon as a property fails.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
