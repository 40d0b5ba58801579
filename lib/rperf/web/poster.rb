# frozen_string_literal: true

require_relative "../version"
require_relative "post"

module Rperf
  # HTTP and TLS, for the command.
  module Web
    # Sends for `rperf push`, which has no TLS of its own and starts a Ruby with this file. Parcels come on stdin, and
    # answers go to stdout: lists of texts, with the length of the list in front, and that of each text. It ends with
    # its input, even in the middle of a parcel.
    module Poster
      class << self
        def run(input, output)
          [input, output].each(&:binmode)
          parcels = Thread::Queue.new
          sender = Thread.new { loop { write(output, answer(*parcels.pop)) } }
          sender.report_on_exception = false
          sender.abort_on_exception = true
          loop { parcels << read(input) }
        rescue EOFError, Errno::EPIPE
          exit!(true)
        end

        private

        def answer(url, body, *headers)
          [url, *headers].each { |text| text.force_encoding(Encoding::UTF_8) }
          Post.call(url, headers.each_slice(2).to_a, body)
        rescue LoadError => e
          # A Ruby may have been built without OpenSSL.
          [0, "#{e.message} (#{e.class})", "", -1.0]
        end

        def read(input) = Array.new(number(input)) { exactly(input, number(input)) }

        def number(input) = exactly(input, 4).unpack1("N")

        def exactly(input, size)
          text = input.read(size)
          text && text.bytesize == size ? text : raise(EOFError)
        end

        def write(output, texts)
          texts = texts.map { |text| text.to_s.b }
          output.write([texts.size].pack("N"), *texts.flat_map { |text| [[text.bytesize].pack("N"), text] })
          output.flush
        end
      end
    end
    private_constant :Poster

    # What else is printed is no answer.
    answers = $stdout.dup
    $stdout.reopen($stderr)
    Poster.run($stdin, answers)
  end
  private_constant :Web
end
