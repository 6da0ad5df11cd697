/* The peer of `scripts/bench drain`: the plainest worker that librabbitmq can do.
 *
 *   librabbitmq fill  URL QUEUE COUNT BYTES      publishes, each body another, at least 20
 *                                                bytes; confirmed at the end
 *   librabbitmq drain URL QUEUE COUNT PREFETCH   each body and a line end to standard
 *                                                output, an ack for every 50
 */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(amqp_rpc_reply_t reply, const char *doing) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) {
    fprintf(stderr, "librabbitmq: %s failed\n", doing);
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 6 || (strcmp(argv[1], "fill") == 0 && atol(argv[5]) < 20)) return 64;
  struct amqp_connection_info info;
  if (amqp_parse_url(argv[2], &info) != AMQP_STATUS_OK) return 78;
  const amqp_bytes_t queue = amqp_cstring_bytes(argv[3]);
  const long count = atol(argv[4]), last = atol(argv[5]);
  amqp_connection_state_t connection = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(connection);
  if (amqp_socket_open(socket, info.host, info.port) != AMQP_STATUS_OK) return 69;
  must(amqp_login(connection, info.vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password), "login");
  amqp_channel_open(connection, 1);
  must(amqp_get_rpc_reply(connection), "channel");

  if (strcmp(argv[1], "fill") == 0) {
    char *body = malloc((size_t)last);
    memset(body, 'x', (size_t)last);
    amqp_basic_properties_t properties = {0};
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    properties.delivery_mode = 2;
    const amqp_bytes_t bytes = {(size_t)last, body};
    for (long n = 0; n < count; n++) {
      char number[21];
      snprintf(number, sizeof number, "%020ld", n);
      memcpy(body, number, 20);
      if (amqp_basic_publish(connection, 1, amqp_empty_bytes, queue, 0, 0, &properties, bytes) != AMQP_STATUS_OK) return 69;
    }
  } else {
    amqp_basic_qos(connection, 1, 0, (uint16_t)last, 0);
    must(amqp_get_rpc_reply(connection), "qos");
    amqp_basic_consume(connection, 1, queue, amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    must(amqp_get_rpc_reply(connection), "consume");
    for (long n = 1; n <= count; n++) {
      amqp_envelope_t envelope;
      amqp_maybe_release_buffers(connection);
      must(amqp_consume_message(connection, &envelope, NULL, 0), "delivery");
      fwrite(envelope.message.body.bytes, 1, envelope.message.body.len, stdout);
      putchar('\n');
      if (n % 50 == 0 || n == count) {
        /* Acked is what was written. */
        if (fflush(stdout) != 0) return 74;
        amqp_basic_ack(connection, 1, envelope.delivery_tag, 1);
      }
      amqp_destroy_envelope(&envelope);
    }
  }
  /* Answered only after all that was sent before. */
  must(amqp_channel_close(connection, 1, AMQP_REPLY_SUCCESS), "close");
  must(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "close");
  return 0;
}
