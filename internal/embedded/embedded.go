// Package embedded passes the parts of a public executor to the packages of this module that build
// on it.
package embedded

import (
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Parts are the parts of an executor.
type Parts struct {
	Executor *executor.Executor
	Store    store.Store
	Sealer   encrypted.Sealer
	Channels []channel.Channel
	Dialog   *conversation.Handler // nil: no conversations
}

// PartsOf returns the parts of a *executor.Executor. Package executor sets it; it is not a method,
// so that internal types are not part of the public API.
var PartsOf func(executor any) Parts
