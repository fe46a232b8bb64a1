import Koa from "koa"
import { onKoa } from "./contracts/adapter/on-koa.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/koa on Koa 3", onKoa(Koa))
