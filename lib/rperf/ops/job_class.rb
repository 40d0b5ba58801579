# frozen_string_literal: true

module Rperf
  module Ops
    # What jobs are called: by their classes, never with what they get.
    module JobClass
      class << self
        # @return [String, nil] the name of the job's class; nil if it has none
        def of(job)
          case job
          when nil then nil
          when Object then name_of(Builtin::CLASS.bind_call(job))
          end
        end

        # @return [String, nil] the name of a class
        def name_of(job_class) = Builtin::NAME.bind_call(job_class)
      end
    end
  end
end
