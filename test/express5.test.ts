import express from "express"
import { onExpress } from "./contracts/adapter/on-express.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/express on Express 5", onExpress(express))
