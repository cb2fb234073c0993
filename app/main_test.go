package app

import (
	"os"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
