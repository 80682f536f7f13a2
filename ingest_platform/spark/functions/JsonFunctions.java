package ingest.platform;

import java.io.Serializable;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;

/**
 * The catalog of `json_object(value BINARY, schema STRUCT, timestampFormat STRING) -> schema`.
 *
 * Exactly one JSON object, in UTF-8, in the types of the schema, becomes a row; anything else
 * becomes null. `schema` is null in the type of the result (`CAST(NULL AS STRUCT<...>)`);
 * `timestampFormat` is a constant, null for Spark's default.
 *
 * `from_json` does the same at a higher cost: it puts a reader with
 * a buffer of 8 kB around each record, replaces malformed UTF-8 silently and stops after the first
 * value, so that its input has to be checked and wrapped first. Fields are converted by Spark's
 * own JacksonParser here too. (Catalogs of functions: Spark's FunctionCatalog and ScalarFunction.)
 */
public final class JsonFunctions implements FunctionCatalog {

    private static final String FUNCTION = "json_object";

    private String name;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
        if (identifier.namespace().length > 0 || !FUNCTION.equals(identifier.name())) {
            throw new NoSuchFunctionException(identifier);
        }
        return new Unbound();
    }

    private static final class Unbound implements UnboundFunction {

        public String name() {
            return FUNCTION;
        }

        public String description() {
            return "json_object(value BINARY, schema STRUCT, timestampFormat STRING)";
        }

        public BoundFunction bind(StructType arguments) {
            StructField[] fields = arguments.fields();
            if (fields.length != 3 || !(fields[1].dataType() instanceof StructType)) {
                throw new UnsupportedOperationException(description());
            }
            return new JsonObject((StructType) fields[1].dataType());
        }
    }

    /** Used by one task, hence by one thread; what cannot be sent to a task is made there. */
    public static final class JsonObject implements ScalarFunction, Serializable {

        private final StructType schema;
        private transient JsonFactory factory;
        private transient Function1 toRow;

        JsonObject(StructType schema) {
            this.schema = schema;
        }

        public String name() {
            return FUNCTION;
        }

        public String canonicalName() {
            return "ingest." + FUNCTION + ":" + schema.json();
        }

        public DataType[] inputTypes() {
            return new DataType[] { DataTypes.BinaryType, schema, DataTypes.StringType };
        }

        public DataType resultType() {
            return schema;
        }

        public boolean isResultNullable() {
            return true;
        }

        /** Spark's generated code calls this method by its name and parameter types. */
        public InternalRow invoke(byte[] value, InternalRow typed, UTF8String timestampFormat) {
            if (value == null || value.length == 0 || !isText(value)) {
                return null;
            }
            if (toRow == null) {
                open(timestampFormat);
            }
            try {
                JsonParser parser = factory.createParser(value);
                try {
                    if (parser.nextToken() != JsonToken.START_OBJECT) {
                        return null;
                    }
                    Object row = toRow.apply(parser);
                    return parser.nextToken() == null ? (InternalRow) row : null;
                } finally {
                    parser.close();
                }
            } catch (Exception e) {
                // Jackson's and Spark's many exceptions all say that this is no such object. The
                // record goes to the quarantine, where a second look finds the words for it.
                return null;
            }
        }

        private void open(UTF8String timestampFormat) {
            // A thousand levels are no data; Jackson's own limit is one level above.
            Map options = (Map) Map$.MODULE$.empty().updated("maxNestingDepth", "999");
            if (timestampFormat != null) {
                options = (Map) options.updated("timestampFormat", timestampFormat.toString());
            }
            JSONOptions json = new JSONOptions(options, "UTC", "_corrupt");
            toRow = new JacksonParser(schema, json, false, Nil$.MODULE$).makeConverter(schema);
            factory = json.buildJsonFactory();
        }

        /**
         * Whether the bytes are UTF-8 without a byte order mark. Jackson would guess UTF-16 and
         * UTF-32 from zeros, skip a mark, and let surrogates pass.
         */
        private static boolean isText(byte[] value) {
            boolean ascii = true;
            for (int i = 0; i < value.length; i++) {
                if (value[i] == 0) {
                    return false;
                }
                ascii &= value[i] > 0;
            }
            return ascii || value[0] > 0 && UTF8String.fromBytes(value).isValid();
        }
    }
}
