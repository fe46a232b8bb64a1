import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"

/** What a client must be able to do: send commands. The app's may be of another version of the SDK than ours. */
export type DynamoDBSender = Pick<DynamoDBClient, "send">
