import "express"
import "fastify"
