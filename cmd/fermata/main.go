// Command fermata is the server, and what people use it with.
package main

import (
	"os"

	"github.com/fermata-go/fermata/app"
)

func main() { os.Exit(app.Main()) }
