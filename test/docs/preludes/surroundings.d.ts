/// <reference path="./fetch-servers.d.ts" />
import "express"
import "fastify"
