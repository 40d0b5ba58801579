# frozen_string_literal: true

module Rperf
  class RackMiddleware
    # Keys of Rack environments, which the extension learns of, too.
    module Keys
      # The request, for {Routing} to find.
      REQUEST = "rperf.request"
      # The account of the request.
      ACCOUNT = "rperf.account"
      # The header with the time at which a proxy has taken the request.
      QUEUED = "HTTP_X_REQUEST_START"
    end
    private_constant :Keys
  end
end
