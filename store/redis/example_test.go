package redis_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/redis"
)

// PostgreSQL has everything, and Redis the bytes of checkpoints used in the last hour.
func ExampleNew() {
	ctx := context.Background()
	behind, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer behind.Close()
	client, err := redis.NewClient(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	s, err := redis.New(behind, client, redis.Config{TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}

	checkpoint, err := s.Load(ctx, store.Key{Account: "acme", Run: "demo-1"})
	fmt.Println(checkpoint.Version, err)
	fmt.Println(s.Stats().Hits, "parts came from Redis")
}
