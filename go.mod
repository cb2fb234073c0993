module github.com/fermata-go/fermata

go 1.26.0
