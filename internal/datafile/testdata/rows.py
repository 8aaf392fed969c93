import pyarrow as pa, pyarrow.parquet as pq
# What testdata/rows.parquet is made by: pyarrow 26, pages of version 2, several groups of rows.
rows=[{"conversations":[{"from":"human","value":f"question {i} é"},{"from":"gpt","value":"answer "*(i%3)}],"turns":[f"t{i}a",f"t{i}b"],"problem":f"p{i}","share":i/8,"n":i,"none":None if i%2 else "x","raw":b"bytes"} for i in range(700)]
t=pa.Table.from_pylist(rows)
t=t.set_column(t.schema.get_field_index("problem"),"problem",t["problem"].cast(pa.large_string()))
pq.write_table(t,"rows.parquet",row_group_size=300,compression="zstd",data_page_version="2.0")
