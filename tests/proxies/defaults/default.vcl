vcl 4.1;

backend board {
    .host = "127.0.0.1";
    .port = "8733";
}

sub vcl_backend_response {
    set beresp.do_gzip = true;
}
