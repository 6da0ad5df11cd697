// A peer of `scripts/bench publish`: confirmed publishes by amqplib.
//
//   node publish_amqplib.js URL QUEUE COUNT BYTES WINDOW
//
// Persistent and mandatory, at most WINDOW messages without a confirm. Ends with 0 only
// if each one was confirmed and none came back. NODE_PATH says where amqplib is.
"use strict";
const amqplib = require("amqplib/callback_api");

const [url, queue, ...numbers] = process.argv.slice(2);
const [count, size, window] = numbers.map(Number);
const body = Buffer.alloc(size, "x");
const options = { persistent: true, mandatory: true };

function fail(error) {
  console.error(`publish_amqplib.js: ${error.message}`);
  process.exit(69);
}

amqplib.connect(url, { noDelay: true }, (error, connection) => {
  if (error) fail(error);
  connection.createConfirmChannel((error, channel) => {
    if (error) fail(error);
    let sent = 0;
    let confirmed = 0;
    channel.on("error", fail);
    channel.on("return", () => fail(new Error("a message reached no queue")));
    function more() {
      while (sent < count && sent - confirmed < window) {
        sent += 1;
        channel.sendToQueue(queue, body, options, taken);
      }
    }
    function taken(error) {
      if (error) fail(error);
      confirmed += 1;
      if (confirmed === count) connection.close();
      else more();
    }
    more();
  });
});
