"""The 22 queries of TPC-H in the dataframe interface that dask.dataframe, pandas and dask-cudf share.

Node half. A query takes ``Read`` and the scale factor. It returns a frame, or, if its answer is one row of totals, a
dict of lazy numbers. ``QUERIES`` says which columns it has, and the order of its rows, which the client makes.
Meaning, parameters and columns: TPC-H specification 3.0.1, section 2.4, with the parameters of its validation runs.
"""

import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Tuple, Union

import pandas as pd

Read = Callable[..., Any]
"""``read(table, *columns)``: the frame."""
Answer = Union[Any, Mapping[str, Any]]
NEXT_TO = 1 - 1e-9
"""A sum is the largest if it equals the largest but for the order in which it was added up (query 15)."""


def grouped(frame: Any, by: List[str], how: Mapping[str, str], *, many: bool = False) -> Any:
    """Aggregates by group, keys as columns; ``many`` groups stay in as many partitions as they come from."""
    parts = {"split_out": frame.npartitions} if many and hasattr(frame, "npartitions") else {}
    return frame.groupby(by, sort=False).agg(dict(how), **parts).reset_index()


def distinct(frame: Any) -> Any:
    """Different rows, in as many partitions as they come from."""
    parts = {"split_out": frame.npartitions} if hasattr(frame, "npartitions") else {}
    return frame.drop_duplicates(**parts)


def _between(column: Any, first: str, end: str) -> Any:
    """Days from ``first`` on, before ``end``."""
    return (column >= pd.Timestamp(first)) & (column < pd.Timestamp(end))


def _discounted(frame: Any) -> Any:
    return frame.l_extendedprice * (1 - frame.l_discount)


def _in_nations(frame: Any, key: str, nation: Any) -> Any:
    return frame.merge(nation, left_on=key, right_on="n_nationkey")


def _nations_of(read: Read, region: str) -> Any:
    regions = read("region", "r_regionkey", "r_name")
    nations = read("nation", "n_nationkey", "n_name", "n_regionkey")
    return nations.merge(regions[regions.r_name == region], left_on="n_regionkey", right_on="r_regionkey")


def _nation(read: Read, *names: str) -> Any:
    nations = read("nation", "n_nationkey", "n_name")
    return nations[nations.n_name.isin(list(names))]


def pricing_summary(read: Read, _scale: float) -> Answer:
    """Query 1."""
    item = read(
        *("lineitem", "l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax"),
        "l_shipdate",
    )
    item = item[item.l_shipdate <= pd.Timestamp("1998-09-02")]
    item = item.assign(sum_disc_price=_discounted(item))
    item = item.assign(
        sum_charge=item.sum_disc_price * (1 + item.l_tax),
        sum_qty=item.l_quantity,
        sum_base_price=item.l_extendedprice,
        avg_qty=item.l_quantity,
        avg_price=item.l_extendedprice,
        avg_disc=item.l_discount,
        count_order=item.l_quantity,
    )
    sums = ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge")
    how = {**dict.fromkeys(sums, "sum"), **dict.fromkeys(("avg_qty", "avg_price", "avg_disc"), "mean")}
    return grouped(item, ["l_returnflag", "l_linestatus"], {**how, "count_order": "count"})


def minimum_cost_supplier(read: Read, _scale: float) -> Answer:
    """Query 2."""
    part = read("part", "p_partkey", "p_mfgr", "p_size", "p_type")
    part = part[(part.p_size == 15) & part.p_type.str.endswith("BRASS")]
    supplier = read("supplier", "s_suppkey", "s_name", "s_address", "s_nationkey", "s_phone", "s_acctbal", "s_comment")
    supplier = _in_nations(supplier, "s_nationkey", _nations_of(read, "EUROPE"))
    offer = read("partsupp", "ps_partkey", "ps_suppkey", "ps_supplycost")
    offer = offer.merge(part, left_on="ps_partkey", right_on="p_partkey")
    offer = offer.merge(supplier, left_on="ps_suppkey", right_on="s_suppkey")
    least = grouped(offer, ["p_partkey"], {"ps_supplycost": "min"})
    return offer.merge(least, on=["p_partkey", "ps_supplycost"])


def shipping_priority(read: Read, _scale: float) -> Answer:
    """Query 3."""
    customer = read("customer", "c_custkey", "c_mktsegment")
    order = read("orders", "o_orderkey", "o_custkey", "o_orderdate", "o_shippriority")
    item = read("lineitem", "l_orderkey", "l_extendedprice", "l_discount", "l_shipdate")
    customer = customer[customer.c_mktsegment == "BUILDING"]
    order = order[order.o_orderdate < pd.Timestamp("1995-03-15")]
    item = item[item.l_shipdate > pd.Timestamp("1995-03-15")]
    joined = order.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = joined.merge(item, left_on="o_orderkey", right_on="l_orderkey")
    joined = joined.assign(revenue=_discounted(joined))
    by = ["l_orderkey", "o_orderdate", "o_shippriority"]
    return grouped(joined, by, {"revenue": "sum"}, many=True).nlargest(10, "revenue")


def order_priority(read: Read, _scale: float) -> Answer:
    """Query 4."""
    order = read("orders", "o_orderkey", "o_orderdate", "o_orderpriority")
    order = order[_between(order.o_orderdate, "1993-07-01", "1993-10-01")]
    item = read("lineitem", "l_orderkey", "l_commitdate", "l_receiptdate")
    late = item[item.l_commitdate < item.l_receiptdate][["l_orderkey"]]
    joined = order.merge(late, left_on="o_orderkey", right_on="l_orderkey")[["o_orderkey", "o_orderpriority"]]
    joined = distinct(joined).rename(columns={"o_orderkey": "order_count"})
    return grouped(joined, ["o_orderpriority"], {"order_count": "count"})


def local_supplier_volume(read: Read, _scale: float) -> Answer:
    """Query 5."""
    order = read("orders", "o_orderkey", "o_custkey", "o_orderdate")
    order = order[_between(order.o_orderdate, "1994-01-01", "1995-01-01")]
    customer = _in_nations(read("customer", "c_custkey", "c_nationkey"), "c_nationkey", _nations_of(read, "ASIA"))
    supplier = read("supplier", "s_suppkey", "s_nationkey")
    joined = order.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = joined.merge(
        read("lineitem", "l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"),
        left_on="o_orderkey",
        right_on="l_orderkey",
    )
    joined = joined.merge(supplier, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
    return grouped(joined.assign(revenue=_discounted(joined)), ["n_name"], {"revenue": "sum"})


def forecast_revenue(read: Read, _scale: float) -> Answer:
    """Query 6. Discounts are multiples of 0.01, so the bounds lie between two of them."""
    item = read("lineitem", "l_extendedprice", "l_discount", "l_quantity", "l_shipdate")
    item = item[
        _between(item.l_shipdate, "1994-01-01", "1995-01-01")
        & (item.l_discount > 0.045)
        & (item.l_discount < 0.075)
        & (item.l_quantity < 24)
    ]
    return {"revenue": (item.l_extendedprice * item.l_discount).sum()}


def volume_shipping(read: Read, _scale: float) -> Answer:
    """Query 7."""
    nation = _nation(read, "FRANCE", "GERMANY")
    supplier = _in_nations(read("supplier", "s_suppkey", "s_nationkey"), "s_nationkey", nation)
    supplier = supplier.rename(columns={"n_name": "supp_nation"})[["s_suppkey", "supp_nation"]]
    customer = _in_nations(read("customer", "c_custkey", "c_nationkey"), "c_nationkey", nation)
    customer = customer.rename(columns={"n_name": "cust_nation"})[["c_custkey", "cust_nation"]]
    item = read("lineitem", "l_orderkey", "l_suppkey", "l_extendedprice", "l_discount", "l_shipdate")
    item = item[_between(item.l_shipdate, "1995-01-01", "1997-01-01")]
    joined = item.merge(supplier, left_on="l_suppkey", right_on="s_suppkey")
    joined = joined.merge(read("orders", "o_orderkey", "o_custkey"), left_on="l_orderkey", right_on="o_orderkey")
    joined = joined.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = joined[joined.supp_nation != joined.cust_nation]
    joined = joined.assign(revenue=_discounted(joined), l_year=joined.l_shipdate.dt.year)
    return grouped(joined, ["supp_nation", "cust_nation", "l_year"], {"revenue": "sum"})


def market_share(read: Read, _scale: float) -> Answer:
    """Query 8."""
    part = read("part", "p_partkey", "p_type")
    part = part[part.p_type == "ECONOMY ANODIZED STEEL"]
    order = read("orders", "o_orderkey", "o_custkey", "o_orderdate")
    order = order[_between(order.o_orderdate, "1995-01-01", "1997-01-01")]
    customer = _in_nations(read("customer", "c_custkey", "c_nationkey"), "c_nationkey", _nations_of(read, "AMERICA"))
    nation = read("nation", "n_nationkey", "n_name").rename(columns={"n_nationkey": "nationkey", "n_name": "nation"})
    supplier = read("supplier", "s_suppkey", "s_nationkey")
    item = read("lineitem", "l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_discount")
    joined = item.merge(part, left_on="l_partkey", right_on="p_partkey")
    joined = joined.merge(order, left_on="l_orderkey", right_on="o_orderkey")
    joined = joined.merge(customer[["c_custkey"]], left_on="o_custkey", right_on="c_custkey")
    joined = joined.merge(supplier, left_on="l_suppkey", right_on="s_suppkey")
    joined = joined.merge(nation, left_on="s_nationkey", right_on="nationkey")
    joined = joined.assign(volume=_discounted(joined), o_year=joined.o_orderdate.dt.year)
    joined = joined.assign(mkt_share=joined.volume * (joined.nation == "BRAZIL").astype("float64"))
    shares = grouped(joined, ["o_year"], {"mkt_share": "sum", "volume": "sum"})
    return shares.assign(mkt_share=shares.mkt_share / shares.volume)


def product_profit(read: Read, _scale: float) -> Answer:
    """Query 9."""
    part = read("part", "p_partkey", "p_name")
    part = part[part.p_name.str.contains("green", regex=False)][["p_partkey"]]
    supplier = read("supplier", "s_suppkey", "s_nationkey")
    supplier = _in_nations(supplier, "s_nationkey", read("nation", "n_nationkey", "n_name"))
    supplier = supplier.rename(columns={"n_name": "nation"})[["s_suppkey", "nation"]]
    item = read("lineitem", "l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount")
    joined = item.merge(part, left_on="l_partkey", right_on="p_partkey")
    joined = joined.merge(
        read("partsupp", "ps_partkey", "ps_suppkey", "ps_supplycost"),
        left_on=["l_partkey", "l_suppkey"],
        right_on=["ps_partkey", "ps_suppkey"],
    )
    joined = joined.merge(supplier, left_on="l_suppkey", right_on="s_suppkey")
    joined = joined.merge(read("orders", "o_orderkey", "o_orderdate"), left_on="l_orderkey", right_on="o_orderkey")
    profit = _discounted(joined) - joined.ps_supplycost * joined.l_quantity
    joined = joined.assign(sum_profit=profit, o_year=joined.o_orderdate.dt.year)
    return grouped(joined, ["nation", "o_year"], {"sum_profit": "sum"})


def returned_items(read: Read, _scale: float) -> Answer:
    """Query 10."""
    customer = read("customer", "c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_comment")
    order = read("orders", "o_orderkey", "o_custkey", "o_orderdate")
    order = order[_between(order.o_orderdate, "1993-10-01", "1994-01-01")]
    item = read("lineitem", "l_orderkey", "l_extendedprice", "l_discount", "l_returnflag")
    item = item[item.l_returnflag == "R"]
    joined = order.merge(item, left_on="o_orderkey", right_on="l_orderkey")
    joined = joined.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = _in_nations(joined, "c_nationkey", read("nation", "n_nationkey", "n_name"))
    joined = joined.assign(revenue=_discounted(joined))
    by = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    return grouped(joined, by, {"revenue": "sum"}, many=True).nlargest(20, "revenue")


def important_stock(read: Read, scale: float) -> Answer:
    """Query 11."""
    supplier = _in_nations(read("supplier", "s_suppkey", "s_nationkey"), "s_nationkey", _nation(read, "GERMANY"))
    stock = read("partsupp", "ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost")
    stock = stock.merge(supplier, left_on="ps_suppkey", right_on="s_suppkey")
    stock = stock.assign(value=stock.ps_supplycost * stock.ps_availqty)
    values = grouped(stock, ["ps_partkey"], {"value": "sum"}, many=True)
    return values[values.value > stock.value.sum() * (0.0001 / scale)]


def shipping_modes(read: Read, _scale: float) -> Answer:
    """Query 12."""
    item = read("lineitem", "l_orderkey", "l_shipmode", "l_shipdate", "l_commitdate", "l_receiptdate")
    item = item[
        item.l_shipmode.isin(["MAIL", "SHIP"])
        & (item.l_commitdate < item.l_receiptdate)
        & (item.l_shipdate < item.l_commitdate)
        & _between(item.l_receiptdate, "1994-01-01", "1995-01-01")
    ]
    joined = item.merge(read("orders", "o_orderkey", "o_orderpriority"), left_on="l_orderkey", right_on="o_orderkey")
    is_high = joined.o_orderpriority.isin(["1-URGENT", "2-HIGH"])
    joined = joined.assign(high_line_count=is_high.astype("int64"), low_line_count=(~is_high).astype("int64"))
    return grouped(joined, ["l_shipmode"], {"high_line_count": "sum", "low_line_count": "sum"})


def customer_distribution(read: Read, _scale: float) -> Answer:
    """Query 13."""
    order = read("orders", "o_orderkey", "o_custkey", "o_comment")
    order = order[~order.o_comment.str.contains("special.*requests", regex=True)][["o_orderkey", "o_custkey"]]
    joined = read("customer", "c_custkey").merge(order, left_on="c_custkey", right_on="o_custkey", how="left")
    counts = grouped(joined, ["c_custkey"], {"o_orderkey": "count"}, many=True)
    counts = counts.rename(columns={"o_orderkey": "c_count", "c_custkey": "custdist"})
    return grouped(counts, ["c_count"], {"custdist": "count"})


def promotion_effect(read: Read, _scale: float) -> Answer:
    """Query 14."""
    item = read("lineitem", "l_partkey", "l_extendedprice", "l_discount", "l_shipdate")
    item = item[_between(item.l_shipdate, "1995-09-01", "1995-10-01")]
    joined = item.merge(read("part", "p_partkey", "p_type"), left_on="l_partkey", right_on="p_partkey")
    joined = joined.assign(revenue=_discounted(joined))
    promoted = joined[joined.p_type.str.startswith("PROMO")]
    return {"promo_revenue": 100 * promoted.revenue.sum() / joined.revenue.sum()}


def top_supplier(read: Read, _scale: float) -> Answer:
    """Query 15."""
    item = read("lineitem", "l_suppkey", "l_extendedprice", "l_discount", "l_shipdate")
    item = item[_between(item.l_shipdate, "1996-01-01", "1996-04-01")]
    revenue = grouped(item.assign(total_revenue=_discounted(item)), ["l_suppkey"], {"total_revenue": "sum"})
    largest = revenue[revenue.total_revenue >= revenue.total_revenue.max() * NEXT_TO]
    supplier = read("supplier", "s_suppkey", "s_name", "s_address", "s_phone")
    return supplier.merge(largest, left_on="s_suppkey", right_on="l_suppkey")


def parts_suppliers(read: Read, _scale: float) -> Answer:
    """Query 16."""
    part = read("part", "p_partkey", "p_brand", "p_type", "p_size")
    part = part[
        (part.p_brand != "Brand#45")
        & ~part.p_type.str.startswith("MEDIUM POLISHED")
        & part.p_size.isin([49, 14, 23, 45, 19, 3, 36, 9])
    ]
    supplier = read("supplier", "s_suppkey", "s_comment")
    supplier = supplier[~supplier.s_comment.str.contains("Customer.*Complaints", regex=True)][["s_suppkey"]]
    offer = read("partsupp", "ps_partkey", "ps_suppkey").merge(part, left_on="ps_partkey", right_on="p_partkey")
    offer = offer.merge(supplier, left_on="ps_suppkey", right_on="s_suppkey")
    offer = distinct(offer[["p_brand", "p_type", "p_size", "ps_suppkey"]])
    offer = offer.rename(columns={"ps_suppkey": "supplier_cnt"})
    return grouped(offer, ["p_brand", "p_type", "p_size"], {"supplier_cnt": "count"}, many=True)


def small_quantity_orders(read: Read, _scale: float) -> Answer:
    """Query 17."""
    part = read("part", "p_partkey", "p_brand", "p_container")
    part = part[(part.p_brand == "Brand#23") & (part.p_container == "MED BOX")]
    item = read("lineitem", "l_partkey", "l_quantity", "l_extendedprice")
    joined = item.merge(part, left_on="l_partkey", right_on="p_partkey")
    mean = grouped(joined, ["p_partkey"], {"l_quantity": "mean"}).rename(columns={"l_quantity": "mean_quantity"})
    joined = joined.merge(mean, on="p_partkey")
    return {"avg_yearly": joined[joined.l_quantity < 0.2 * joined.mean_quantity].l_extendedprice.sum() / 7.0}


def large_volume_customer(read: Read, _scale: float) -> Answer:
    """Query 18."""
    item = read("lineitem", "l_orderkey", "l_quantity")
    large = grouped(item, ["l_orderkey"], {"l_quantity": "sum"}, many=True)
    large = large[large.l_quantity > 300].rename(columns={"l_quantity": "sum_quantity"})
    order = read("orders", "o_orderkey", "o_custkey", "o_orderdate", "o_totalprice")
    order = order.merge(large, left_on="o_orderkey", right_on="l_orderkey")
    return order.merge(read("customer", "c_custkey", "c_name"), left_on="o_custkey", right_on="c_custkey")


def discounted_revenue(read: Read, _scale: float) -> Answer:
    """Query 19."""
    item = read(
        *("lineitem", "l_partkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipinstruct", "l_shipmode")
    )
    item = item[item.l_shipmode.isin(["AIR", "AIR REG"]) & (item.l_shipinstruct == "DELIVER IN PERSON")]
    part = read("part", "p_partkey", "p_brand", "p_container", "p_size")
    joined = item.merge(part[part.p_size >= 1], left_on="l_partkey", right_on="p_partkey")

    def kind(brand: str, size: str, packs: Tuple[str, ...], least: int, largest: int) -> Any:
        return (
            (joined.p_brand == brand)
            & joined.p_container.isin([f"{size} {pack}" for pack in packs])
            & (joined.l_quantity >= least)
            & (joined.l_quantity <= least + 10)
            & (joined.p_size <= largest)
        )

    joined = joined[
        kind("Brand#12", "SM", ("CASE", "BOX", "PACK", "PKG"), 1, 5)
        | kind("Brand#23", "MED", ("BAG", "BOX", "PKG", "PACK"), 10, 10)
        | kind("Brand#34", "LG", ("CASE", "BOX", "PACK", "PKG"), 20, 15)
    ]
    return {"revenue": _discounted(joined).sum()}


def potential_part_promotion(read: Read, _scale: float) -> Answer:
    """Query 20."""
    part = read("part", "p_partkey", "p_name")
    part = part[part.p_name.str.startswith("forest")][["p_partkey"]]
    item = read("lineitem", "l_partkey", "l_suppkey", "l_quantity", "l_shipdate")
    item = item[_between(item.l_shipdate, "1994-01-01", "1995-01-01")]
    item = item.merge(part, left_on="l_partkey", right_on="p_partkey")
    sold = grouped(item, ["l_partkey", "l_suppkey"], {"l_quantity": "sum"})
    stock = read("partsupp", "ps_partkey", "ps_suppkey", "ps_availqty")
    stock = stock.merge(sold, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
    stock = stock[stock.ps_availqty > 0.5 * stock.l_quantity]
    supplier = read("supplier", "s_suppkey", "s_name", "s_address", "s_nationkey")
    supplier = _in_nations(supplier, "s_nationkey", _nation(read, "CANADA"))
    joined = supplier.merge(stock[["ps_suppkey"]], left_on="s_suppkey", right_on="ps_suppkey")
    return distinct(joined[["s_suppkey", "s_name", "s_address"]])


def waiting_suppliers(read: Read, _scale: float) -> Answer:
    """Query 21. An order has several suppliers where their least and largest keys differ; so for its late lines."""
    item = read("lineitem", "l_orderkey", "l_suppkey", "l_commitdate", "l_receiptdate")
    late = item[item.l_receiptdate > item.l_commitdate][["l_orderkey", "l_suppkey"]]

    def ends(lines: Any, least: str, largest: str) -> Any:
        keys = lines[["l_orderkey", "l_suppkey"]]
        keys = keys.assign(**{least: keys.l_suppkey, largest: keys.l_suppkey})
        return grouped(keys, ["l_orderkey"], {least: "min", largest: "max"}, many=True)

    order = read("orders", "o_orderkey", "o_orderstatus")
    order = order[order.o_orderstatus == "F"][["o_orderkey"]]
    supplier = _in_nations(
        read("supplier", "s_suppkey", "s_name", "s_nationkey"), "s_nationkey", _nation(read, "SAUDI ARABIA")
    )
    joined = late.merge(supplier[["s_suppkey", "s_name"]], left_on="l_suppkey", right_on="s_suppkey")
    joined = joined.merge(order, left_on="l_orderkey", right_on="o_orderkey")
    joined = joined.merge(ends(item, "least", "largest"), on="l_orderkey")
    joined = joined.merge(ends(late, "least_late", "largest_late"), on="l_orderkey")
    joined = joined[(joined.least != joined.largest) & (joined.least_late == joined.largest_late)]
    return grouped(joined.rename(columns={"l_orderkey": "numwait"}), ["s_name"], {"numwait": "count"})


def sales_opportunity(read: Read, _scale: float) -> Answer:
    """Query 22."""
    customer = read("customer", "c_custkey", "c_phone", "c_acctbal")
    customer = customer.assign(cntrycode=customer.c_phone.str.slice(0, 2))
    customer = customer[customer.cntrycode.isin(["13", "31", "23", "29", "30", "18", "17"])]
    mean = customer[customer.c_acctbal > 0].c_acctbal.mean()
    customer = customer[customer.c_acctbal > mean]
    buyer = distinct(read("orders", "o_custkey"))
    joined = customer.merge(buyer, left_on="c_custkey", right_on="o_custkey", how="left")
    joined = joined[joined.o_custkey.isna()]
    joined = joined.rename(columns={"c_custkey": "numcust", "c_acctbal": "totacctbal"})
    return grouped(joined, ["cntrycode"], {"numcust": "count", "totacctbal": "sum"})


@dataclasses.dataclass(frozen=True)
class Query:
    """``columns`` of the answer; ``order``: a column with a leading ``-`` descends; ``limit`` 0: all rows."""

    ask: Callable[[Read, float], Answer]
    columns: str
    order: str = ""
    limit: int = 0


QUERIES: Dict[int, Query] = {
    1: Query(
        pricing_summary,
        "l_returnflag l_linestatus sum_qty sum_base_price sum_disc_price sum_charge "
        "avg_qty avg_price avg_disc count_order",
        "l_returnflag l_linestatus",
    ),
    2: Query(
        minimum_cost_supplier,
        "s_acctbal s_name n_name p_partkey p_mfgr s_address s_phone s_comment",
        "-s_acctbal n_name s_name p_partkey",
        100,
    ),
    3: Query(shipping_priority, "l_orderkey revenue o_orderdate o_shippriority", "-revenue o_orderdate", 10),
    4: Query(order_priority, "o_orderpriority order_count", "o_orderpriority"),
    5: Query(local_supplier_volume, "n_name revenue", "-revenue"),
    6: Query(forecast_revenue, "revenue"),
    7: Query(volume_shipping, "supp_nation cust_nation l_year revenue", "supp_nation cust_nation l_year"),
    8: Query(market_share, "o_year mkt_share", "o_year"),
    9: Query(product_profit, "nation o_year sum_profit", "nation -o_year"),
    10: Query(returned_items, "c_custkey c_name revenue c_acctbal n_name c_address c_phone c_comment", "-revenue", 20),
    11: Query(important_stock, "ps_partkey value", "-value"),
    12: Query(shipping_modes, "l_shipmode high_line_count low_line_count", "l_shipmode"),
    13: Query(customer_distribution, "c_count custdist", "-custdist -c_count"),
    14: Query(promotion_effect, "promo_revenue"),
    15: Query(top_supplier, "s_suppkey s_name s_address s_phone total_revenue", "s_suppkey"),
    16: Query(parts_suppliers, "p_brand p_type p_size supplier_cnt", "-supplier_cnt p_brand p_type p_size"),
    17: Query(small_quantity_orders, "avg_yearly"),
    18: Query(
        large_volume_customer,
        "c_name c_custkey o_orderkey o_orderdate o_totalprice sum_quantity",
        "-o_totalprice o_orderdate",
        100,
    ),
    19: Query(discounted_revenue, "revenue"),
    20: Query(potential_part_promotion, "s_name s_address", "s_name"),
    21: Query(waiting_suppliers, "s_name numwait", "-numwait s_name", 100),
    22: Query(sales_opportunity, "cntrycode numcust totacctbal", "cntrycode"),
}


def finished(query: Query, answer: Answer) -> pd.DataFrame:
    """The computed answer as a pandas frame: its columns, its rows in order, no more than ``limit``."""
    if isinstance(answer, Mapping):
        answer = pd.DataFrame({name: [float(value)] for name, value in answer.items()})
    elif hasattr(answer, "to_pandas"):
        answer = answer.to_pandas()
    words = query.order.split()
    if words:
        ascending = [not word.startswith("-") for word in words]
        answer = answer.sort_values([word.lstrip("-") for word in words], ascending=ascending)
    answer = answer.head(query.limit) if query.limit else answer
    return answer[query.columns.split()].reset_index(drop=True)
