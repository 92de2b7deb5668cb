// Webhook-receiver takes an organization's events: it verifies them, prints each change of status once and in order, recovers
// what never came, and says which contexts must be dropped.
//
//	export ACCESSION_WEBHOOK_SECRET=whsec_…          # as accession webhooks set showed it; two, separated by a space, while it rotates
//	export ACCESSION_URL=https://custody.example ACCESSION_ORG=harbour ACCESSION_TOKEN=acc_…
//	go run ./examples/webhook-receiver -listen :8444 -cert tls.crt -key tls.key
//
// Without a certificate it listens in clear, for a proxy before it that speaks TLS.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/accession/accession/client"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:8444", "HOST:PORT")
	certificate, key := flag.String("cert", "", "PEM file of the certificate"), flag.String("key", "", "PEM file of its private key")
	flag.Parse()
	receiver := &client.Receiver{
		Secrets: strings.Fields(os.Getenv("ACCESSION_WEBHOOK_SECRET")),
		Status:  changed, Recall: recalled,
		Failed: func(err error) { log.Println("not taken:", err) },
		// A process that must remember across restarts sets Store: three methods on its own database.
	}
	if len(receiver.Secrets) == 0 {
		return errors.New("set ACCESSION_WEBHOOK_SECRET to the secret that accession webhooks set showed")
	}
	if token := os.Getenv("ACCESSION_TOKEN"); token != "" { // recovers gaps
		custody, err := client.New(os.Getenv("ACCESSION_URL"), client.WithToken(token))
		if err != nil {
			return err
		}
		receiver.Client, receiver.Org = custody, os.Getenv("ACCESSION_ORG")
	}
	server := &http.Server{Addr: *listen, Handler: receiver, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	served := make(chan error, 1)
	go func() {
		if *certificate != "" {
			served <- server.ListenAndServeTLS(*certificate, *key)
			return
		}
		served <- server.ListenAndServe()
	}()
	log.Println("receiver listens at", *listen)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}

func changed(_ context.Context, e client.StatusChanged) error {
	log.Println(e.UploadID, e.Sequence, e.Status, e.Stage)
	return nil
}

func recalled(_ context.Context, e client.ContextRecalled) error {
	log.Println("drop what you hold of", e.UploadID, e.ContextSHA256s)
	return nil
}
