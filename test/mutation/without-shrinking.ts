import fc from "fast-check"

// That a property fails is enough to know of a mutant: nobody looks for the smallest example.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
