# frozen_string_literal: true

module Rperf
  module Ops
    # Templates that Tilt renders, as for Sinatra: by the path of their file. Those without a path are none, nor are
    # those of engines that render without the class that all inherit from.
    module Tilt
      # Wraps the method that renders one.
      module Rendering
        KIND = "render"
        private_constant :KIND

        def render(*, **, &)
          return __rperf_render(*, **, &) unless Native.main_ractor? && Native.ops?

          case path = @file
          when String then Named.call(KIND, path) { __rperf_render(*, **, &) }
          else __rperf_render(*, **, &)
          end
        end
      end
      private_constant :Rendering

      class << self
        def find
          found = Loaded.module(:Tilt, :Template)
          found if found.is_a?(Class) && found.method_defined?(:render)
        end

        def install(template) = Wrapped.install(template, Rendering)
      end
    end
  end
end
