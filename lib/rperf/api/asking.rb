# frozen_string_literal: true

require_relative "../argument"
require_relative "../deferred"
require_relative "../session/options"
require_relative "lazy_values"
require_relative "origin"

module Rperf
  # What questions to profiles go through. It is compiled with the first question, and as the first profile is saved.
  module Asking
    CODE = Deferred.new(__dir__, "questions", "natives")
    private_constant :CODE

    class << self
      def questions
        CODE.load
        Questions
      end

      def natives
        CODE.load
        Natives
      end
    end
  end
  private_constant :Asking
end
