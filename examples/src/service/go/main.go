package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	sluicev1 "example.com/shop/sluice/v1"
	"google.golang.org/grpc"
)

func main() {
	// From gRPC 1.63 on, prefer grpc.NewClient and insecure.NewCredentials().
	connection, err := grpc.Dial("127.0.0.1:50051", grpc.WithInsecure(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		log.Fatal(err)
	}
	limiter := sluicev1.NewRateLimiterClient(connection)
	request, _ := json.Marshal(map[string]string{"user_id": "ada"})
	question := &sluicev1.ShouldForwardRequestRequest{ServiceId: 1, Request: string(request)}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	answer, err := limiter.ShouldForwardRequest(ctx, question)
	if err != nil {
		log.Fatal("admit the request, or refuse it: ", err)
	}
	fmt.Println(answer.ShouldForward, answer.StatusCode, answer.Remaining)
}
