// A peer of `scripts/bench publish`: confirmed publishes by amqp091-go.
//
//	publish_amqp091 URL QUEUE COUNT BYTES WINDOW
//
// Persistent and mandatory, at most WINDOW messages without a confirm. Ends with 0 only
// if each one was confirmed and none came back.
package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must(err error) {
	if err != nil {
		log.Fatalf("publish_amqp091: %v", err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func main() {
	url, queue := os.Args[1], os.Args[2]
	count, size, window := number(os.Args[3]), number(os.Args[4]), number(os.Args[5])
	connection, err := amqp.Dial(url)
	must(err)
	channel, err := connection.Channel()
	must(err)
	must(channel.Confirm(false))
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, window))
	returns := channel.NotifyReturn(make(chan amqp.Return, 1))
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: bytes.Repeat([]byte("x"), size)}
	sent, open := 0, 0
	for sent < count || open > 0 {
		for sent < count && open < window {
			must(channel.PublishWithContext(context.Background(), "", queue, true, false, message))
			sent++
			open++
		}
		select {
		case confirm, isThere := <-confirms:
			if !isThere || !confirm.Ack {
				log.Fatal("publish_amqp091: a message was refused, or the channel closed")
			}
			open--
		case <-returns:
			log.Fatal("publish_amqp091: a message reached no queue")
		}
	}
	must(connection.Close())
}
