/* The limit that `scripts/bench publish` holds mq against: the plainest loop of confirmed
 * publishes that librabbitmq can do.
 *
 *   publish_loop URL QUEUE COUNT BYTES WINDOW
 *   publish_loop URL QUEUE                      how many messages the queue has
 *
 * Persistent and mandatory, at most WINDOW messages without a confirm. Ends with 0 only if
 * each one was confirmed and none came back.
 */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known of all messages. */
static unsigned char *is_settled; /* by delivery tag, from 1 */
static uint64_t sent, lowest = 1; /* the first that is not settled */
static uint64_t acked, nacked, returned;

static void fail(const char *doing) {
  fprintf(stderr, "publish_loop: %s failed\n", doing);
  exit(69);
}

static void must(amqp_rpc_reply_t reply, const char *doing) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) fail(doing);
}

/* One answer may be for all up to its tag, and they need not come in order. */
static void settle(uint64_t tag, int multiple, uint64_t *count) {
  if (tag == 0) tag = sent;
  if (tag > sent) fail("a confirm of what was not sent");
  for (uint64_t at = multiple ? lowest : tag; at <= tag; at++) {
    if (is_settled[at]) continue;
    is_settled[at] = 1;
    ++*count;
  }
  while (lowest <= sent && is_settled[lowest]) lowest++;
}

static uint64_t open_ones(void) { return sent - acked - nacked; }

/* Waits for one frame from the broker, and understands it. */
static void take(amqp_connection_state_t connection) {
  amqp_frame_t frame;
  amqp_message_t message;
  if (amqp_simple_wait_frame(connection, &frame) != AMQP_STATUS_OK) fail("waiting for a confirm");
  if (frame.frame_type != AMQP_FRAME_METHOD) return;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const amqp_basic_ack_t *ack = frame.payload.method.decoded;
      settle(ack->delivery_tag, ack->multiple, &acked);
      break;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const amqp_basic_nack_t *nack = frame.payload.method.decoded;
      settle(nack->delivery_tag, nack->multiple, &nacked);
      break;
    }
    case AMQP_BASIC_RETURN_METHOD:
      returned++;
      must(amqp_read_message(connection, frame.channel, &message, 0), "reading what came back");
      amqp_destroy_message(&message);
      break;
    default:
      fail("publishing: the broker closed the channel or the connection; it");
  }
}

int main(int argc, char **argv) {
  if (argc != 6 && argc != 3) return 64;
  struct amqp_connection_info info;
  if (amqp_parse_url(argv[1], &info) != AMQP_STATUS_OK) return 78;
  const amqp_bytes_t queue = amqp_cstring_bytes(argv[2]);
  amqp_connection_state_t connection = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(connection);
  if (amqp_socket_open(socket, info.host, info.port) != AMQP_STATUS_OK) fail("connecting");
  must(amqp_login(connection, info.vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password), "login");
  amqp_channel_open(connection, 1);
  must(amqp_get_rpc_reply(connection), "channel");
  if (argc == 3) {
    const amqp_queue_declare_ok_t *queue_has = amqp_queue_declare(connection, 1, queue, 1, 0, 0, 0, amqp_empty_table);
    must(amqp_get_rpc_reply(connection), "asking for the queue");
    printf("%u\n", queue_has->message_count);
    must(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "close");
    return 0;
  }
  const uint64_t count = strtoull(argv[3], NULL, 10), window = strtoull(argv[5], NULL, 10);
  const size_t size = strtoul(argv[4], NULL, 10);
  if (count == 0 || window == 0) return 64;
  amqp_confirm_select(connection, 1);
  must(amqp_get_rpc_reply(connection), "confirm.select");

  is_settled = calloc(count + 1, 1);
  char *body = malloc(size + 1);
  if (is_settled == NULL || body == NULL) fail("memory");
  memset(body, 'x', size);
  const amqp_bytes_t bytes = {size, body};
  amqp_basic_properties_t properties = {0};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = 2;
  while (sent < count) {
    if (amqp_basic_publish(connection, 1, amqp_empty_bytes, queue, 1, 0, &properties, bytes) != AMQP_STATUS_OK)
      fail("publishing");
    sent++;
    if (open_ones() < window) continue;
    /* What else came with the first answer is taken too, without another wait. */
    while (open_ones() >= window || amqp_frames_enqueued(connection) || amqp_data_in_buffer(connection)) {
      take(connection);
      /* Frames lie in the connection's memory until then. */
      if (!amqp_frames_enqueued(connection) && !amqp_data_in_buffer(connection)) amqp_maybe_release_buffers(connection);
    }
  }
  while (open_ones() > 0) take(connection);
  must(amqp_channel_close(connection, 1, AMQP_REPLY_SUCCESS), "close");
  must(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "close");
  amqp_destroy_connection(connection);
  if (nacked + returned > 0) {
    fprintf(stderr, "publish_loop: of %llu messages %llu were refused and %llu reached no queue\n",
            (unsigned long long)sent, (unsigned long long)nacked, (unsigned long long)returned);
    return 67;
  }
  return 0;
}
