// Command shop is somebody's own service, for the tests of the drill: it keeps
// orders in a file, says that it is ready when there are any, and writes a log.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const orders = "/var/lib/shop/orders.txt"

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "order":
			must(os.MkdirAll(filepath.Dir(orders), 0o755))
			f, err := os.OpenFile(orders, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			must(err)
			_, err = fmt.Fprintln(f, "one of those")
			must(err)
			return
		case "live":
			return
		case "ready":
			if b, err := os.ReadFile(orders); err != nil || len(b) == 0 {
				fmt.Println("there are no orders")
				os.Exit(1)
			}
			return
		case "broken":
			os.Exit(7)
		}
	}
	must(os.MkdirAll("/var/log/shop", 0o755))
	must(os.WriteFile("/var/log/shop/access.log", []byte("started\n"), 0o644))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
