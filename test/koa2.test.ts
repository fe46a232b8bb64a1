import Koa from "koa2"
import { onKoa } from "./contracts/adapter/on-koa.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/koa on Koa 2", onKoa(Koa))
