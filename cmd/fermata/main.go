// Command fermata is the Fermata server and its command-line client.
package main

import (
	"os"

	"github.com/fermata-go/fermata/app"
)

func main() { os.Exit(app.Main()) }
