import express from "express4"
import { onExpress } from "./contracts/adapter/on-express.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/express on Express 4", onExpress(express))
