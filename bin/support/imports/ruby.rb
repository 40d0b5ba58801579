# frozen_string_literal: true

require "prism"
require_relative "graph"

module Imports
  # The uses between the files of a Ruby library: `require_relative`, constants that another
  # file defines, and methods of a module that several files open.
  class RubyLibrary
    # Say of what a module's body has that it is a namespace only.
    NAMING = %i[autoload private_constant require require_relative].freeze

    # What a file says: a name that it looks up in `nesting`, and the method that it calls
    # on that, if it does; `name` is nil for a method of the module itself.
    Mention = Data.define(:name, :method, :nesting, :line)

    # What one file defines and mentions.
    class Source < Prism::Visitor
      attr_reader :file, :module_path, :constants, :methods, :mentions, :required

      def initialize(path, file, module_path)
        super()
        @file = file
        @module_path = module_path
        @nesting = []
        # Modules with content, and constants with a value.
        @constants = Set.new
        # Of each module, by name.
        @methods = Hash.new { |methods, name| methods[name] = Set.new }
        @mentions = []
        @required = []
        visit(Prism.parse_file(path).value)
      end

      def visit_class_node(node)
        visit(node.superclass)
        open_module(node)
      end

      def visit_module_node(node) = open_module(node)

      def visit_def_node(node)
        @methods[@nesting.join("::")] << node.name
        super
      end

      def visit_constant_write_node(node)
        @constants << [*@nesting, node.name].join("::")
        super
      end

      def visit_constant_read_node(node) = mention(node.name.to_s, nil, node)
      def visit_constant_path_node(node) = mention(node.slice, nil, node)

      def visit_call_node(node)
        case node
        in { receiver: nil, name: :require_relative, arguments: { arguments: [{ unescaped: String => path }] } }
          @required << [path, node.location.start_line]
        in { receiver: Prism::ConstantReadNode | Prism::ConstantPathNode => receiver }
          mention(receiver.slice, called(node), node)
          visit(node.arguments)
          visit(node.block)
        else
          mention(nil, node.name, node) if node.receiver.nil? || node.receiver.is_a?(Prism::SelfNode)
          super
        end
      end

      private

      def open_module(node)
        @nesting.push(node.constant_path.slice)
        @constants << @nesting.join("::") if content?(node)
        visit(node.body)
        @nesting.pop
      end

      def content?(node)
        statements = node.body.respond_to?(:body) ? node.body.body : []
        node.body.nil? || statements.any? do |statement|
          case statement
          when Prism::ModuleNode, Prism::ClassNode, Prism::ConstantWriteNode then false
          when Prism::CallNode then !NAMING.include?(statement.name)
          else true
          end
        end
      end

      # The method that is called, by `send` too.
      def called(node)
        case node
        in { name: :send | :public_send | :__send__, arguments: { arguments: [Prism::SymbolNode => symbol, *] } }
          symbol.unescaped.to_sym
        else node.name
        end
      end

      def mention(name, method, node)
        @mentions << Mention.new(name, method, @nesting.dup, node.location.start_line)
      end
    end

    attr_reader :directory

    # `directory` is relative to `root`.
    def initialize(root, directory)
      @directory = directory
      names = Dir.glob("**/*.rb", base: File.join(root, directory)).sort
      @sources = names.map do |name|
        Source.new(File.join(root, directory, name), File.join(directory, name), name.delete_suffix(".rb").split("/"))
      end
      @owners = owners(&:constants)
      @method_owners = owners { |source| source.methods.flat_map { |name, all| all.map { |it| [name, it] } } }
    end

    def files = @sources.map(&:module_path)

    # A file that defines nothing and that no other one requires is but a list of files.
    def uses
      required = @sources.reject { |source| list?(source) }.flat_map { |source| required(source) }
      required + @sources.flat_map { |source| mentioned(source) }
    end

    private

    # The sources that have each of what the block says.
    def owners
      @sources.each_with_object({}) do |source, owners|
        yield(source).each { |it| (owners[it] ||= []) << source }
      end
    end

    def list?(source)
      @needed ||= @sources.flat_map { |it| required(it) }.to_set(&:to)
      source.constants.empty? && source.methods.empty? && !@needed.include?(source.module_path)
    end

    def required(source)
      source.required.map do |path, line|
        to = File.expand_path("/#{[*source.module_path[...-1], path].join("/")}").delete_prefix("/").split("/")
        Use.new(source.module_path, to, "#{source.file}:#{line}")
      end
    end

    def mentioned(source)
      source.mentions.flat_map do |mention|
        owners = owners_of(mention)
        next [] if owners.include?(source)

        owners.map { |owner| Use.new(source.module_path, owner.module_path, "#{source.file}:#{mention.line}") }
      end
    end

    # The sources that have what is mentioned; several, if a module is opened in several.
    def owners_of(mention)
      return @method_owners.fetch([mention.nesting.join("::"), mention.method], []) if mention.name.nil?

      name = full_name(mention)
      @method_owners[[name, mention.method]] || @owners[name] || []
    end

    # As Ruby looks a constant up: in the innermost module first.
    def full_name(mention)
      sizes = mention.name.start_with?("::") ? [0] : mention.nesting.size.downto(0)
      levels = sizes.map { |size| [*mention.nesting.take(size), mention.name.delete_prefix("::")].join("::") }
      levels.find { |name| @owners.key?(name) }
    end
  end
end
