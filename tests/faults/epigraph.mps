NAME        
ROWS
 N  Obj     
 E  r0      
 E  r1      
 E  r2      
 E  r3      
 L  r4      
 L  r5      
 L  r6      
 L  r7      
 L  r8      
 L  r9      
 L  r10     
 L  r11     
 L  r12     
 L  r13     
 L  r14     
 L  r15     
 L  r16     
 E  r17     
 L  r18     
 L  r19     
 L  r20     
 L  r21     
 L  r22     
 L  r23     
 L  r24     
 L  r25     
 L  r26     
 L  r27     
 L  r28     
 L  r29     
 L  r30     
 L  r31     
 L  r32     
 L  r33     
 E  r34     
 L  r35     
 L  r36     
 L  r37     
 L  r38     
 L  r39     
 L  r40     
 G  r41     
 G  r42     
 L  r43     
 G  r44     
 L  r45     
 G  r46     
 L  r47     
 G  r48     
 G  r49     
 L  r50     
 G  r51     
 G  r52     
 G  r53     
 G  r54     
 G  r55     
 G  r56     
 G  r57     
 G  r58     
 G  r59     
 G  r60     
 G  r61     
 G  r62     
COLUMNS
    leaf_0    r0        1
    leaf_0    r38       1
    leaf_0    r41       1
    leaf_1    r0        1
    leaf_1    r13       1
    leaf_1    r35       1
    leaf_2    r0        1
    leaf_2    r15       1
    leaf_2    r18       1
    leaf_2    r35       1
    leaf_3    r0        1
    leaf_3    r15       1
    leaf_3    r22       1
    leaf_3    r26       1
    leaf_3    r30       1
    leaf_3    r35       1
    leaf_3    r41       0.5
    leaf_4    r1        1
    leaf_4    r4        1
    leaf_4    r7        1
    leaf_4    r8        1
    leaf_4    r27       1
    leaf_4    r41       0.571428571428571
    leaf_5    r1        1
    leaf_5    r5        1
    leaf_5    r8        1
    leaf_5    r14       1
    leaf_5    r41       0.5
    leaf_6    r1        1
    leaf_6    r4        1
    leaf_6    r11       1
    leaf_6    r23       1
    leaf_6    r41       0.6
    leaf_7    r1        1
    leaf_7    r5        1
    leaf_7    r16       1
    leaf_7    r41       0.8
    leaf_8    r1        1
    leaf_8    r4        1
    leaf_8    r7        1
    leaf_8    r8        1
    leaf_8    r19       1
    leaf_8    r23       1
    leaf_8    r31       1
    leaf_9    r1        1
    leaf_9    r5        1
    leaf_9    r10       1
    leaf_9    r11       1
    leaf_9    r14       1
    leaf_9    r41       1
    leaf_10   r1        1
    leaf_10   r4        1
    leaf_10   r11       1
    leaf_10   r19       1
    leaf_10   r27       1
    leaf_10   r31       1
    leaf_10   r41       0.5
    leaf_11   r2        1
    leaf_11   r9        1
    leaf_11   r20       1
    leaf_11   r24       1
    leaf_11   r32       1
    leaf_12   r2        1
    leaf_12   r9        1
    leaf_12   r28       1
    leaf_12   r39       1
    leaf_12   r41       1
    leaf_13   r2        1
    leaf_13   r12       1
    leaf_13   r24       1
    leaf_13   r41       0.5
    leaf_14   r2        1
    leaf_14   r9        1
    leaf_14   r28       1
    leaf_14   r36       1
    leaf_15   r2        1
    leaf_15   r12       1
    leaf_15   r20       1
    leaf_15   r28       1
    leaf_15   r32       1
    leaf_15   r41       0.5
    leaf_16   r3        1
    leaf_16   r21       1
    leaf_16   r25       1
    leaf_16   r29       1
    leaf_16   r40       1
    leaf_16   r41       1
    leaf_17   r3        1
    leaf_17   r21       1
    leaf_17   r25       1
    leaf_17   r29       1
    leaf_17   r37       1
    leaf_18   r3        1
    leaf_18   r21       1
    leaf_18   r25       1
    leaf_18   r33       1
    leaf_18   r41       0.444444444444444
    leaf_19   r3        1
    leaf_19   r25       1
    leaf_19   r29       1
    leaf_19   r33       1
    leaf_19   r40       1
    leaf_19   r41       1
    leaf_20   r3        1
    leaf_20   r21       1
    leaf_20   r29       1
    leaf_20   r33       1
    leaf_20   r41       0.571428571428571
    leaf_21   r3        1
    leaf_21   r25       1
    leaf_21   r29       1
    leaf_21   r33       1
    leaf_21   r37       1
    leaf_21   r41       0.5
    MARK0000  'MARKER'                 'INTORG'
    d0_le     r4        -1
    d0_le     r5        1
    d0_le     r42       1.28
    d0_le     r43       1.28
    d0_le     r49       1
    d1_le_0   r6        1
    d1_le_0   r7        -1
    d1_le_0   r9        -1
    d1_le_0   r11       1
    d1_le_0   r12       1
    d1_le_0   r44       0.931322574615479
    d1_le_0   r45       0.931322574615479
    d1_le_0   r52       1
    d1_le_1   r6        -1
    d1_le_1   r8        -1
    d1_le_1   r10       1
    d1_le_1   r44       0.931322574615479
    d1_le_1   r45       0.931322574615479
    d2_le     r13       -1
    d2_le     r14       -1
    d2_le     r15       1
    d2_le     r16       1
    d2_le     r53       -1
    d2_le     r54       -1
    d2_le     r60       -0.5
    c3_is_0   r17       1
    c3_is_0   r18       1
    c3_is_0   r19       1
    c3_is_0   r20       1
    c3_is_0   r21       1
    c3_is_0   r61       -0.25
    c3_is_1   r17       1
    c3_is_1   r22       1
    c3_is_1   r23       1
    c3_is_1   r24       1
    c3_is_1   r25       1
    c3_is_1   r61       -0.25
    c3_is_2   r17       1
    c3_is_2   r26       1
    c3_is_2   r27       1
    c3_is_2   r28       1
    c3_is_2   r29       1
    c3_is_2   r53       1
    c3_is_2   r54       1
    c3_is_3   r17       1
    c3_is_3   r30       1
    c3_is_3   r31       1
    c3_is_3   r32       1
    c3_is_3   r33       1
    c3_is_3   r61       -0.25
    f4_is_0   r34       1
    f4_is_0   r35       1
    f4_is_0   r36       1
    f4_is_0   r37       1
    f4_is_0   r62       -0.12
    f4_is_1   r34       1
    f4_is_1   r38       1
    f4_is_1   r39       1
    f4_is_1   r40       1
    f4_is_1   r53       1
    f4_is_1   r54       1
    d0        r42       0.64
    d0        r43       0.64
    d0        r46       1
    d0        r47       0.64
    d0        r48       1.28
    d0        r55       0.650827948197328
    d0        r56       -0.650827948197328
    d0        r57       -0.650827948197328
    d1        r44       0.931322574615479
    d1        r45       0.931322574615479
    d1        r46       1
    d1        r50       0.465661287307739
    d1        r51       0.931322574615479
    d1        r59       -0.25
    d0_changed  r47       -1.28
    d0_changed  r48       1.28
    d0_changed  r49       1
    d0_changed  r53       -1
    d0_changed  r54       -1
    d1_changed  r50       -0.931322574615479
    d1_changed  r52       1
    d1_changed  r53       -1
    MARK0001  'MARKER'                 'INTEND'
    cost      r55       1
    cost      r56       1
    cost      r57       1
    cost      r58       -0.5
    largest   Obj       1024
    largest   r58       1
    largest   r59       1
    largest   r60       1
    largest   r61       1
    largest   r62       1
RHS
    RHS_V     r0        1
    RHS_V     r1        1
    RHS_V     r2        1
    RHS_V     r3        1
    RHS_V     r5        1
    RHS_V     r10       1
    RHS_V     r11       1
    RHS_V     r12       1
    RHS_V     r15       1
    RHS_V     r16       1
    RHS_V     r17       1
    RHS_V     r18       1
    RHS_V     r19       1
    RHS_V     r20       1
    RHS_V     r21       1
    RHS_V     r22       1
    RHS_V     r23       1
    RHS_V     r24       1
    RHS_V     r25       1
    RHS_V     r26       1
    RHS_V     r27       1
    RHS_V     r28       1
    RHS_V     r29       1
    RHS_V     r30       1
    RHS_V     r31       1
    RHS_V     r32       1
    RHS_V     r33       1
    RHS_V     r34       1
    RHS_V     r35       1
    RHS_V     r36       1
    RHS_V     r37       1
    RHS_V     r38       1
    RHS_V     r39       1
    RHS_V     r40       1
    RHS_V     r41       3.33571428571402
    RHS_V     r42       1.28
    RHS_V     r43       1.92
    RHS_V     r44       1.86264514923096
    RHS_V     r45       1.86264514923096
    RHS_V     r46       3
    RHS_V     r47       0.64
    RHS_V     r48       1.28
    RHS_V     r49       1
    RHS_V     r52       1
    RHS_V     r53       -2
    RHS_V     r54       -1
    RHS_V     r55       0.650827948197327
    RHS_V     r56       -0.650827948197327
    RHS_V     r57       -0.650827948197327
BOUNDS
 UP BOUND     leaf_0    1
 UP BOUND     leaf_1    1
 UP BOUND     leaf_2    1
 UP BOUND     leaf_3    1
 UP BOUND     leaf_4    1
 UP BOUND     leaf_5    1
 UP BOUND     leaf_6    1
 UP BOUND     leaf_7    1
 UP BOUND     leaf_8    1
 UP BOUND     leaf_9    1
 UP BOUND     leaf_10   1
 UP BOUND     leaf_11   1
 UP BOUND     leaf_12   1
 UP BOUND     leaf_13   1
 UP BOUND     leaf_14   1
 UP BOUND     leaf_15   1
 UP BOUND     leaf_16   1
 UP BOUND     leaf_17   1
 UP BOUND     leaf_18   1
 UP BOUND     leaf_19   1
 UP BOUND     leaf_20   1
 UP BOUND     leaf_21   1
 BV BOUND     d0_le   
 BV BOUND     d1_le_0 
 BV BOUND     d1_le_1 
 BV BOUND     d2_le   
 BV BOUND     c3_is_0 
 BV BOUND     c3_is_1 
 BV BOUND     c3_is_2 
 BV BOUND     c3_is_3 
 BV BOUND     f4_is_0 
 BV BOUND     f4_is_1 
 UI BOUND     d0        3
 UI BOUND     d1        2
 BV BOUND     d0_changed
 BV BOUND     d1_changed
 UP BOUND     cost      1.30165589775489
 UP BOUND     largest   0.75
ENDATA
