package main

import (
	"context"
	"time"

	sluicev1 "example.com/shop/sluice/v1"
)

func settleAfter(limiter sluicev1.RateLimiterClient, answer *sluicev1.ShouldForwardRequestResponse, ended <-chan map[string]uint64) error {
	ctx, reservation := context.Background(), answer.Reservation
	for {
		select {
		case used := <-ended:
			settlement := &sluicev1.Settlement{Reservation: reservation, Used: used}
			_, err := limiter.Settle(ctx, &sluicev1.SettleRequest{Settlements: []*sluicev1.Settlement{settlement}})
			return err
		case <-time.After(time.Duration(answer.GetRenewWithinMs()/2) * time.Millisecond):
			renewed, err := limiter.Renew(ctx, &sluicev1.RenewRequest{Reservations: []string{reservation}})
			if err == nil && renewed.Renewals[0].Error == nil {
				reservation = renewed.Renewals[0].Reservation
			}
		}
	}
}
