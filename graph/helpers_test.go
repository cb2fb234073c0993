package graph_test

import "github.com/fermata-go/fermata/store"

func storeKey(run string) store.Key { return store.Key{Run: run} }
